// Package bodies has clients whose uploads stall or crawl take what they can of core and an
// edge, while others log in, upload and look at pictures.
package bodies

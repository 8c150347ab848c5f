// Package console tests the web console in a real Chromium, at a real site: core behind an edge. A walk
// fails if the page reports a violation of its policy, writes an error to the browser's console, or
// sends a request to another host. With TEST_APPEARANCES=all, walks write screenshots of
// all pages to .dev/screenshots.
package console

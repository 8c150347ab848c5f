// Package apiclients tests what others' programs make of the API's document: two linters find
// nothing in it, and the clients that three generators make compile, sign up at a real site,
// upload a texture and get it back.
//
// The linters and two of the generators are Node programs. They are looked for in
// .dev/node/apiclients of the repository; package.json beside this file names them.
package apiclients

// Package apiclients tests the API's OpenAPI document with other projects' tools: two linters find
// nothing in it, and the clients that three generators make compile, register at a real site,
// upload a texture and download it.
//
// The linters and two of the generators are Node programs. They are looked up in
// .dev/node/apiclients of the repository; package.json beside this file lists them.
package apiclients

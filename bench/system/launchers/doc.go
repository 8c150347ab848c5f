// Package launchers tests the API of launchers and game servers with other projects' programs, on a
// site of real ones.
//
// Its tests run minecraft-protocol, as a game and as a game server, in a version of each era of the
// game's protocol. It is a Node program, looked up in .dev/node/launchers of the repository;
// package.json beside this file pins it.
//
// make launchers runs RunSuite and CheckAgent, which take programs that must not be copied
// here, by their licences.
package launchers

// Command kurabe is the whole service in one binary: the server with its agent,
// and short commands for people.
//
// This folder holds flags and printing; nothing here decides. Commands that ask a service
// do so through the package client. explain and lab have several files each, so they have
// packages of their own.
package main

// Package client is how a command asks a service: flags that find it, signed requests, and
// the questions that a person is asked at the terminal.
//
// It speaks the public API and the actions of the service "kurabe" only. It keeps one thing, the
// login files of master users, because a service keeps no password.
package client

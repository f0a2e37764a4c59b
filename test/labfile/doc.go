// Command labfile writes result files of the lab that no server was needed for, of known
// effect and with all that a real one has, into a folder: for tests in another language,
// which compute again what is in them. Only test/compat calls it. It writes the same at
// every run, and computes nothing of its own.
package main

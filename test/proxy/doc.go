// Package proxy holds the tests of the connection proxy against real servers and drivers.
package proxy

// Package secret is the use cases of secrets: their versions and stages, and values, which are
// sealed before they reach the store and are opened for those alone who may have them.
//
// A value is a logkey.Secret from the request to the answer. What must not live here: the wire
// form (internal/api/secretsmanager), and whose password a database takes (internal/control).
package secret

// Package scopetest has what tests of use cases begin with: a scope over an empty store.
package scopetest

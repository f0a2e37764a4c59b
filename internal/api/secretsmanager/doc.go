// Package secretsmanager answers AWS Secrets Manager. It translates between AWS's names and the use
// cases of internal/control/secret, and decides nothing.
package secretsmanager

// Package sns answers Amazon SNS: topics, subscriptions and Publish. It translates between AWS's
// names and the use cases of internal/control/topic, and decides nothing.
package sns

// Package topic is the use cases of topics and subscriptions: who may subscribe how, what is set of
// them, and the queueing of what users publish. Deliveries are made by internal/notify.
package topic

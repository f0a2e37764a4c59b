// Package eventsub holds the use cases of event subscriptions, and the Dispatcher, which queues what
// was subscribed to for the topics.
//
// Only the elected server dispatches (Dispatcher.Run is a part of its term). How far it has come is
// written in the transaction that queues the notifications, with the proof of the election: an event
// is queued once for each subscription, whoever dies in between. Whose topic has no room is behind,
// and holds up nobody else.
//
// It knows neither topics' subscribers nor deliveries (internal/notify).
package eventsub

// Package notify delivers the notifications that wait in the store: in the order in which they
// were committed, to each subscription by itself, signed as SNS signs, retried, and given up with
// an event.
//
// Only the elected server delivers (Deliverer.Run is a part of its term), and every write compares
// the election. How far a subscription has come is written in batches after the deliveries: a
// server that dies between the two makes its successor deliver again, with the same MessageId.
// Nothing is passed over that was neither delivered nor given up.
//
// What must not live here: who may subscribe, and what a request may ask (internal/control/topic).
package notify

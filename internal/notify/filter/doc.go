// Package filter is SNS's language of filter policies: which notifications a subscription wants,
// by their attributes or by their body. It knows no topic and keeps nothing.
//
// Invariant: what Parse has accepted can be matched with any notification, in time and memory
// that are bounded by the two texts.
package filter

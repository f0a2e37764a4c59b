// Package alarm evaluates the alarms of metrics.
//
// Evaluate is the decision, pure: data points and a time in, a state with its reason out. Place
// writes a transition, which is one change of the store: the state, its entry in the history,
// and the notifications of the topics that are told. Loop reads the metrics of the alarms that
// are due and commits transitions, at the elected server only: each change compares the election,
// so that a transition is told once, whichever server makes it.
//
// The package knows no metric: it is given a function that reads them. The API uses Place where a
// user sets a state.
package alarm

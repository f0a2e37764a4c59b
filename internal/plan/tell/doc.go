// Package tell has the words that plan and plan/backup have in common where they tell of trouble:
// after how long, and in how much text. It decides nothing; only these two call it. Invariant: two
// failures that differ in numbers alone have one gist, so they are told of once.
package tell

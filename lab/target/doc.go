// Package target gives every trial a fresh server and makes true on it what the trial's
// variant changes: through the RDS API, on any server that a URL names, or on a private
// service that it starts in a temporary folder.
//
// It must not measure, and names of AWS stop here. Its caller is run. Invariants: whatever
// it creates can be found again by anybody, by the tag or the beginning of its name, and
// Close or Clean removes it; what it did not create it neither changes nor removes; no
// password is in an error, an argument or a file that others can read.
package target

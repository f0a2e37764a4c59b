// Package series holds the metrics of a host: one value a second of each series for some
// hours, and the sums of each minute for some days. The agent appends what it measures, the
// API asks each host and joins the answers.
//
// Invariants: a period without a measurement has no bucket, since any number would be taken
// for true; the folder stays below its limit; a folder that is damaged is set aside and said
// so, and never keeps the host from its work.
//
// What must not live here: what a metric means, and how it is measured.
package series

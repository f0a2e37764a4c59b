// Package series holds the metrics of a host: one value a second of each series for some
// hours, and the sums of each minute for some days. The agent appends what it measures, the
// API asks each host and joins the answers.
//
// Each host has three databases of Prometheus' tsdb: seconds, minutes, and the users' own data. A
// minute is rolled up once its samples are there, whichever process finds it; a query reads each
// part of its time where it is kept. The database's damages, panics and clock are handled in
// open.go, part.go and clock.go.
//
// Invariants: a period without a measurement has no bucket, since any number would be taken
// for true; the folder stays below its limit; a folder that is damaged is set aside and said
// so, and never keeps the host from its work.
//
// What must not live here: what a metric means, and how it is measured.
package series

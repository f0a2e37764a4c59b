// Package study holds the definition of a study: what is asked, of which engine, which
// variants are compared under which load, and what counts as a cost. A definition is
// YAML; the built-in ones are embedded files of the same form.
//
// It must not open a connection or a database. Its callers are every other package of
// the lab.
package study

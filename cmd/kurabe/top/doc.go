// Package top shows the load of one DB instance in a terminal, over the public API alone.
package top

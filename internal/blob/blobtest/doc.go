// Package blobtest is the suite that every kind of blob.Store passes, and every
// layer over one. It is called by tests only.
package blobtest

// Package owner says whose something is that the lab leaves on a machine or a server while
// it works: which process, so that another lab knows whether that still runs. Folders and
// files of temporary data are made here. It knows no database.
package owner

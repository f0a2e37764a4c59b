// Package catalog names the metrics of databases: the names, units and meanings of AWS/RDS
// for what a server here has too, and Kurabe's own beside them. The agent measures them, the
// API and the metrics page tell them.
package catalog

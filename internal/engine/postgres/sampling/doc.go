// Package sampling reads the metrics of a running PostgreSQL over one session of the service.
//
// Its statements name pg_catalog alone and read no relation of a user's; the session is opened by
// the driver, which sets what names and settings mean in it.
package sampling

// Package sts answers the Security Token Service's GetCallerIdentity, which every
// AWS tool asks first to learn its account. There are no temporary credentials:
// the rest of the service is refused with a reason. internal/service mounts it.
package sts

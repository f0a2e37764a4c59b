// Package tagging answers the Resource Groups Tagging API over the resources of RDS: tools
// that keep rules over tags (Cloud Custodian, exporters) ask there and not each service.
//
// The tags are those of the RDS API; there are no others and no second record of them.
// Resources of other services do not exist and are found nowhere. internal/service mounts it.
package tagging

package main

import (
	"testing"
	"time"

	"kurabe/test/bench/bed"
	"kurabe/test/bench/failover"
)

// A piece of the clusters may have a bound of its own.
func TestClustersWithin(t *testing.T) {
	if err := check(bed.Settings{Only: failover.Clusters, Within: time.Minute}); err != nil {
		t.Error(err)
	}
}

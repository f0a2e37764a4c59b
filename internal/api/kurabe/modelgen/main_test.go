package main

import (
	"bytes"
	"os"
	"testing"

	ownapi "kurabe/internal/api/kurabe"
)

func TestModelIsCurrent(t *testing.T) {
	const file = "../../../../docs/models/kurabe/2026-11-27/service-2.json"
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, render(ownapi.API{}.Service())) {
		t.Errorf("%s is not what the Go types say; run make gen", file)
	}
}

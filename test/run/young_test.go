package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestMain lets the program of these tests be the runner that makes machines young.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == youngFlag {
		println(becomeYoung(os.Args[2:]).Error())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestYoungMachine(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, youngFlag, "cat", "/proc/uptime").CombinedOutput()
	if err != nil {
		t.Skipf("no time namespaces here: %v %s", err, out)
	}
	up, err := strconv.ParseFloat(strings.Fields(string(out))[0], 64)
	if err != nil || up < youngAge || up > 60 {
		t.Errorf("the machine says to have run for %v s, %v", up, err)
	}
}

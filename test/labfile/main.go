package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kurabe/lab/result/resulttest"
)

// files are by name what is in them: on both sides of the bounds between no interval, the
// exact one and the bootstrap, a twin that is none, and every verdict.
var files = map[string]resulttest.Options{
	"blocks-5":  {Blocks: 5},
	"blocks-6":  {Blocks: 6},
	"blocks-12": {Blocks: 12},
	"blocks-19": {Blocks: 19, Clean: true},
	"blocks-24": {Blocks: 24},
	"alter-6":   {Alter: true, Blocks: 6},
	"alter-12":  {Alter: true, Blocks: 12},
	"primaries": {Blocks: 7, Primaries: true, Clean: true},
	"no-twin":   {Blocks: 8, Effect: map[string]float64{"off′": 0.9}},
	"noisy":     {Blocks: 9, Noise: 0.05},
	"all-verdicts": {Blocks: 16, Noise: 0.02, Clean: true, Effect: map[string]float64{
		"file": 1.2, "table-csv": 0.6, "table-myisam": 1, "table-aria": 0.97,
	}},
}

// seed makes every run of this program write the same.
const seed = 20261122

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "labfile:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: labfile FOLDER")
	}
	for name, options := range files {
		if err := resulttest.Write(filepath.Join(args[0], name+".jsonl"), resulttest.File(seed, options)); err != nil {
			return err
		}
	}
	return nil
}

package study

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed builtin/*.yaml
var files embed.FS

//go:embed template.yaml
var template []byte

// builtins are in the order of the published measurements that they answer to.
var builtins = []string{"audit", "scale", "general-log", "alter", "proxy"}

// Builtins are the names of the studies that the lab brings along.
func Builtins() []string { return slices.Clone(builtins) }

// Builtin gives the study of that name.
func Builtin(name string) (*Study, error) {
	if !slices.Contains(builtins, name) {
		return nil, fmt.Errorf("there is no built-in study %q; there are %s, and `kurabe lab init` writes a file for one of your own", brief(name), strings.Join(builtins, ", "))
	}
	file := name + ".yaml"
	data, err := files.ReadFile("builtin/" + file)
	if err != nil {
		return nil, fmt.Errorf("read the built-in study %s: %w", name, err)
	}
	return Parse(file, data, Options{})
}

// Template is a study to begin with: every key, explained, and ready to run.
func Template() []byte { return slices.Clone(template) }

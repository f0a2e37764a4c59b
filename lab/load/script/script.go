package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"kurabe/lab/study"
)

// Bounds of a script.
const (
	maxBytes        = 64 << 10
	commandsMax     = 500
	variablesMax    = 200
	StatementsMax   = 99 // of all scripts of a workload: their labels have two digits
	expressionDepth = 64
	SleepMax        = 10 * time.Minute
	labelMaxRunes   = 80
	nameMaxBytes    = 63
	errorRunes      = 20
)

// Variables that every script has. pgbench knows them too.
const (
	variableScale  = "scale"
	variableClient = "client_id"
)

// Script is one transaction: commands in their order.
type Script struct {
	Commands []Command
	Weight   int // how often it is drawn, against the others of its workload
}

// Command is a \set, a \sleep or a statement.
type Command struct {
	Line      int
	Set       *expression // into the variable target
	Target    int
	Sleep     *expression // of units
	Unit      time.Duration
	Statement *Statement
}

// Statement is text with the variables that stand in it: texts[0] variables[0] texts[1] ...
type Statement struct {
	Index     int // among all statements of the workload
	texts     []string
	Variables []int
	label     string
}

// AppendText writes the statement with the variables' values in it.
func (s *Statement) AppendText(to []byte, vars []int64) []byte {
	for n, v := range s.Variables {
		to = append(to, s.texts[n]...)
		to = strconv.AppendInt(to, vars[v], 10)
	}
	return append(to, s.texts[len(s.texts)-1]...)
}

// Parameterized is the statement with the engine's marks where the variables are. A
// variable that stands twice is two parameters, as with pgbench, so that the server may
// give them different types.
func (s *Statement) Parameterized(engine string) string {
	var b strings.Builder
	for n := range s.Variables {
		b.WriteString(s.texts[n])
		if engine == study.Postgres {
			fmt.Fprintf(&b, "$%d", n+1)
		} else {
			b.WriteByte('?')
		}
	}
	b.WriteString(s.texts[len(s.texts)-1])
	return b.String()
}

// Set is what a workload's clients do: one of several transactions at a time.
type Set struct {
	List       []Script
	Weights    int
	Variables  []string // by index in the values
	Statements []*Statement
}

// Add parses one more script. The notation is pgbench's: \set NAME EXPRESSION and
// \sleep NUMBER us|ms|s on lines of their own, and statements that end with a semicolon.
// An expression has integers, :NAME, + - * / %, parentheses and random(LOW, HIGH). In a
// Statement :NAME is a variable, except in quotes, comments and after another colon.
func (s *Set) Add(text string, weight int) error {
	if len(text) > maxBytes {
		return fmt.Errorf("script: %d bytes are more than %d", len(text), maxBytes)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("script: it is not UTF-8 text")
	}
	p := &parser{Set: s, text: text, line: 1, known: map[string]int{}}
	for _, name := range []string{variableScale, variableClient} {
		if err := p.define(name); err != nil {
			return err
		}
	}
	before := len(s.Statements)
	if err := p.parse(); err != nil {
		return fmt.Errorf("script, %w", err)
	}
	if len(s.Statements) == before {
		return fmt.Errorf("script: it has no statement")
	}
	s.List = append(s.List, Script{Commands: p.commands, Weight: weight})
	s.Weights += weight
	return nil
}

// Labels are the names of the statements, "01 BEGIN".
func (s *Set) Labels() []string {
	var all []string
	for _, st := range s.Statements {
		all = append(all, Label(st.Index+1, st.label))
	}
	return all
}

// Label names a statement in a result.
func Label(number int, text string) string { return fmt.Sprintf("%02d %s", number, text) }

// LabelText is a statement on one line, without its semicolon, cut to a readable length.
// Label names a statement in a result.
func LabelText(text string) string {
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), "; ")
	if runes := []rune(text); len(runes) > labelMaxRunes {
		return string(runes[:labelMaxRunes]) + "…"
	}
	return text
}

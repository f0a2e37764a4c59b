package load

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
	scriptMaxBytes   = 64 << 10
	commandsMax      = 500
	variablesMax     = 200
	statementsMax    = 99 // of all scripts of a workload: their labels have two digits
	expressionDepth  = 64
	sleepMax         = 10 * time.Minute
	labelMaxRunes    = 80
	nameMaxBytes     = 63
	scriptErrorRunes = 20
)

// Variables that every script has. pgbench knows them too.
const (
	variableScale  = "scale"
	variableClient = "client_id"
)

// script is one transaction: commands in their order.
type script struct {
	commands []command
	weight   int // how often it is drawn, against the others of its workload
}

// command is a \set, a \sleep or a statement.
type command struct {
	line      int
	set       *expression // into the variable target
	target    int
	sleep     *expression // of units
	unit      time.Duration
	statement *statement
}

// statement is text with the variables that stand in it: texts[0] variables[0] texts[1] ...
type statement struct {
	index     int // among all statements of the workload
	texts     []string
	variables []int
	label     string
}

// appendText writes the statement with the variables' values in it.
func (s *statement) appendText(to []byte, vars []int64) []byte {
	for n, v := range s.variables {
		to = append(to, s.texts[n]...)
		to = strconv.AppendInt(to, vars[v], 10)
	}
	return append(to, s.texts[len(s.texts)-1]...)
}

// parameterized is the statement with the engine's marks where the variables are. A
// variable that stands twice is two parameters, as with pgbench, so that the server may
// give them different types.
func (s *statement) parameterized(engine string) string {
	var b strings.Builder
	for n := range s.variables {
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

// scripts is what a workload's clients do: one of several transactions at a time.
type scripts struct {
	list       []script
	weights    int
	variables  []string // by index in the values
	statements []*statement
}

// add parses one more script. The notation is pgbench's: \set NAME EXPRESSION and
// \sleep NUMBER us|ms|s on lines of their own, and statements that end with a semicolon.
// An expression has integers, :NAME, + - * / %, parentheses and random(LOW, HIGH). In a
// statement :NAME is a variable, except in quotes, comments and after another colon.
func (s *scripts) add(text string, weight int) error {
	if len(text) > scriptMaxBytes {
		return fmt.Errorf("script: %d bytes are more than %d", len(text), scriptMaxBytes)
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("script: it is not UTF-8 text")
	}
	p := &scriptParser{scripts: s, text: text, line: 1, known: map[string]int{}}
	for _, name := range []string{variableScale, variableClient} {
		if err := p.define(name); err != nil {
			return err
		}
	}
	before := len(s.statements)
	if err := p.parse(); err != nil {
		return fmt.Errorf("script, %w", err)
	}
	if len(s.statements) == before {
		return fmt.Errorf("script: it has no statement")
	}
	s.list = append(s.list, script{commands: p.commands, weight: weight})
	s.weights += weight
	return nil
}

// labels are the names of the statements, "01 BEGIN".
func (s *scripts) labels() []string {
	var all []string
	for _, st := range s.statements {
		all = append(all, label(st.index+1, st.label))
	}
	return all
}

func label(number int, text string) string { return fmt.Sprintf("%02d %s", number, text) }

// labelText is a statement on one line, without its semicolon, cut to a readable length.
func labelText(text string) string {
	text = strings.TrimRight(strings.Join(strings.Fields(text), " "), "; ")
	if runes := []rune(text); len(runes) > labelMaxRunes {
		return string(runes[:labelMaxRunes]) + "…"
	}
	return text
}

package target

import "regexp"

// outside matches statements that change more than the database in which they run. It
// looks at words only: a statement that hides what it does is its author's matter.
var outside = regexp.MustCompile(`(?is)^\s*(?:set\s+(?:global|persist|persist_only)\b|set\s+@@(?:global|persist)|alter\s+system\b|(?:create|alter|drop)\s+(?:role|user|database|tablespace|server|group)\b|grant\b|revoke\b|install\b|uninstall\b|flush\b|reset\b|purge\b|shutdown\b)|\bmysql\s*\.|` + "`mysql`" + `\s*\.`)

func beyond(statement string) bool { return outside.MatchString(statement) }

// writing matches a line of a script that writes.
var writing = regexp.MustCompile(`(?im)^\s*(?:with\b.*\b)?(?:insert|update|delete|replace|merge|truncate|drop|alter|create|copy|load)\b`)

func writes(script string) bool { return writing.MatchString(script) }

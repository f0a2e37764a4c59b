package load

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"kurabe/internal/tokenize"
)

// secretWords begin the statements that may name a password, or hold one for another server.
var secretWords = regexp.MustCompile(`(?i)\b(password|identified|create\s+server|alter\s+server|user\s+mapping|subscription|change\s+master|conninfo|dblink\w*|(create|alter)\s+(or\s+replace\s+)?(user|role|group)|set_config|encrypt\w*|decrypt\w*|crypt|hmac|pgp_\w+|aes_\w+)\b`)

// secretive says whether a statement may hold a password in a literal.
func secretive(tokenized string) bool { return secretWords.MatchString(tokenized) }

// Dimension is one property of a session by which load is told apart.
type Dimension int

// The dimensions. Their order is that of stored chunks: new ones go to the end.
const (
	WaitType Dimension = iota
	Wait
	Statement // id of the text
	Tokenized // id of the text without its literals
	User
	Host
	Database
	Application
	Kind
	BlockingTokenized
	BlockingUser
	dimensions
)

// Key is the values of all dimensions.
type Key [dimensions]string

const (
	// statementMax bounds the text of a statement that is looked at, in bytes; PostgreSQL's
	// track_activity_query_size is 4096 here.
	statementMax = 4096
	nameMax      = 128 // bytes of a name
)

// clip bounds a text of a server, at a whole character.
func clip(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) {
			if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// digest is the id of a text.
func digest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToUpper(hex.EncodeToString(sum[:20])) // as long as those of AWS
}

// Text is a statement with its ids.
type Text struct {
	ID          string // digest of Statement
	TokenizedID string
	NativeID    string `json:",omitempty"`
	Statement   string
	Tokenized   string
}

// textOf makes the ids of a statement. One that may hold a password is known without its
// literals only; so is every one when mask is set.
func textOf(statement, native string, d tokenize.Dialect, mask bool) Text {
	statement = clip(statement, statementMax)
	t := Text{NativeID: native, Statement: statement, Tokenized: tokenize.Statement(statement, d)}
	if mask || secretive(t.Tokenized) {
		t.Statement = t.Tokenized
	}
	t.ID, t.TokenizedID = digest(t.Statement), digest(t.Tokenized)
	return t
}

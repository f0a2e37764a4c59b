package my

// WordKind is what a Word is.
type WordKind byte

// The kinds.
const (
	End            WordKind = iota
	Name                    // a keyword or a name without quotes
	QuotedName              // in backticks
	Text                    // in quotes, or in double ones, which may be a name by SQL mode
	Number                  // or a name that begins with a digit
	UserVariable            // @name
	SystemVariable          // @@name, without what precedes the name
	Sign                    // one character
)

// Word is a part of a statement.
type Word struct {
	Kind WordKind
	Text []byte // without quotes and marks, escapes not undone
}

// Is says whether it is a keyword, which is given in capitals.
func (w Word) Is(keyword string) bool { return w.Kind == Name && sameFold(w.Text, keyword) }

// Sign says whether it is this one.
func (w Word) Sign(c byte) bool { return w.Kind == Sign && w.Text[0] == c }

// sameFold compares with a text in capitals.
func sameFold(b []byte, capitals string) bool {
	if len(b) != len(capitals) {
		return false
	}
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != capitals[i] {
			return false
		}
	}
	return true
}

// Lexer takes a statement apart. It allocates nothing.
type Lexer struct {
	Rest []byte
	// NoEscapes says that a backslash in a text means itself (SQL mode NO_BACKSLASH_ESCAPES).
	NoEscapes bool

	account  bool // an @ now belongs to the account that was begun
	executed bool // the inside of a comment that the server executes
}

var ofName = func() (t [256]bool) {
	for c := range t {
		t[c] = c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	return t
}()

// Next gives the next word, at the end one of the kind End.
func (x *Lexer) Next() Word {
	account := x.account
	x.account = false
	if x.skip() {
		account = false
	}
	if len(x.Rest) == 0 {
		return Word{}
	}
	switch c := x.Rest[0]; {
	case c == '\'' || c == '"' || c == '`':
		x.account = true
		kind := Text
		if c == '`' {
			kind = QuotedName
		}
		return Word{kind, x.quoted()}
	case c >= '0' && c <= '9':
		return Word{Number, x.name()}
	case ofName[c]:
		x.account = true
		return Word{Name, x.name()}
	case c == '@' && !account:
		return x.variable()
	}
	sign := x.Rest[:1]
	x.Rest = x.Rest[1:]
	return Word{Sign, sign}
}

func (x *Lexer) name() []byte {
	n := 0
	for n < len(x.Rest) && ofName[x.Rest[n]] {
		n++
	}
	name := x.Rest[:n]
	x.Rest = x.Rest[n:]
	return name
}

// variable reads what begins with @.
func (x *Lexer) variable() Word {
	if len(x.Rest) > 1 && x.Rest[1] == '@' {
		x.Rest = x.Rest[2:]
		x.skip()
		return Word{SystemVariable, x.name()}
	}
	x.Rest = x.Rest[1:]
	if len(x.Rest) > 0 && (x.Rest[0] == '\'' || x.Rest[0] == '"' || x.Rest[0] == '`') {
		return Word{UserVariable, x.quoted()}
	}
	n := 0
	for n < len(x.Rest) && (ofName[x.Rest[n]] || x.Rest[n] == '.') {
		n++
	}
	name := x.Rest[:n]
	x.Rest = x.Rest[n:]
	return Word{UserVariable, name}
}

// quoted reads a text to its end, or to that of the statement.
func (x *Lexer) quoted() []byte {
	quote := x.Rest[0]
	for n := 1; n < len(x.Rest); n++ {
		switch c := x.Rest[n]; {
		case c == '\\' && quote != '`' && !x.NoEscapes:
			n++
		case c == quote && n+1 < len(x.Rest) && x.Rest[n+1] == quote:
			n++
		case c == quote:
			text := x.Rest[1:n]
			x.Rest = x.Rest[n+1:]
			return text
		}
	}
	text := x.Rest[1:]
	x.Rest = nil
	return text
}

// skip passes space and comments, and says whether there were any. The inside of a comment
// that the server executes counts as the statement's.
func (x *Lexer) skip() (any bool) {
	for len(x.Rest) > 0 {
		switch c := x.Rest[0]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			x.Rest = x.Rest[1:]
		case c == '#' || c == '-' && x.dashes():
			x.line()
		case c == '/' && len(x.Rest) > 1 && x.Rest[1] == '*':
			x.comment()
		case x.executed && c == '*' && len(x.Rest) > 1 && x.Rest[1] == '/':
			x.Rest, x.executed = x.Rest[2:], false
		default:
			return any
		}
		any = true
	}
	return any
}

func (x *Lexer) dashes() bool {
	return len(x.Rest) > 1 && x.Rest[1] == '-' && (len(x.Rest) == 2 || x.Rest[2] <= ' ')
}

func (x *Lexer) line() {
	for i, c := range x.Rest {
		if c == '\n' {
			x.Rest = x.Rest[i+1:]
			return
		}
	}
	x.Rest = nil
}

func (x *Lexer) comment() {
	inside := x.Rest[2:]
	if len(inside) > 0 && inside[0] == 'M' {
		inside = inside[1:]
	}
	if len(inside) > 0 && inside[0] == '!' {
		inside = inside[1:]
		for len(inside) > 0 && inside[0] >= '0' && inside[0] <= '9' {
			inside = inside[1:]
		}
		x.Rest, x.executed = inside, true
		return
	}
	for i := 2; i+1 < len(x.Rest); i++ {
		if x.Rest[i] == '*' && x.Rest[i+1] == '/' {
			x.Rest = x.Rest[i+2:]
			return
		}
	}
	x.Rest = nil
}

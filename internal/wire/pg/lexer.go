package pg

// Lexer cuts SQL into words, strings and symbols, piece by piece: a statement of any size takes
// no memory. It follows the server's own rules (scan.l) where they decide what is a word.
type lexer struct {
	// backslash is standard_conforming_strings = off.
	backslash bool

	state   lexState
	escapes bool // in the string that is open, or was just closed: a backslash escapes
	depth   int  // of comments
	offset  int  // in the whole text, of what is fed
	start   int  // of the token that is open
	word    [wordBytesMax]byte
	length  int // of word, more when it did not fit
	tag     [wordBytesMax]byte
	tagged  int // bytes of tag
	matched int // of the tag that may end a body
}

// wordBytesMax is more than any name has that matters here: the server cuts names at 63.
const wordBytesMax = 64

type lexState uint8

const (
	inCode lexState = iota
	inWord
	inNumber
	inString
	inStringEscape
	afterQuote // of a string: another quote continues it
	inName     // "quoted"
	afterNameQuote
	afterDash
	inLine
	afterSlash
	inComment
	inCommentStar
	inCommentSlash
	inTag
	inBody
	inBodyEnd
)

type tokenKind uint8

const (
	tokenWord tokenKind = iota // also a keyword; in lower case
	tokenName                  // quoted
	tokenString
	tokenSymbol
)

// classes of bytes.
const (
	isSpace = 1 << iota
	isWord  // may be in a word
	isFirst // may begin one
	isDigit
)

var classes = func() (c [256]uint8) {
	for i := range c {
		b := byte(i)
		switch {
		case b == ' ' || b >= '\t' && b <= '\r':
			c[i] = isSpace
		case b >= '0' && b <= '9':
			c[i] = isDigit | isWord
		case b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b >= 0x80:
			c[i] = isWord | isFirst
		case b == '$':
			c[i] = isWord
		}
	}
	return c
}()

// take gives each token of text to the scanner.
func (s *Scanner) take(text []byte) {
	l := &s.lexer
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch l.state {
		case inCode:
			s.code(c, l.offset+i)
		case inWord:
			n := l.length
			for classes[c]&isWord != 0 {
				if n < wordBytesMax {
					l.word[n] = lower[c]
				}
				n++
				if i++; i == len(text) {
					break
				}
				c = text[i]
			}
			if l.length = n; i == len(text) {
				break
			}
			if c == '\'' && l.length == 1 && (l.word[0] == 'e') {
				l.open(inString, l.offset+i)
				l.escapes = true
				continue
			}
			s.emit(tokenWord, l.offset+i)
			s.code(c, l.offset+i)
		case inNumber:
			if classes[c]&isWord == 0 && c != '.' {
				l.state = inCode
				s.token(tokenSymbol, 0, l.start, l.offset+i)
				s.code(c, l.offset+i)
			}
		default:
			if l.quoted(s, c, l.offset+i) {
				i-- // the byte belongs to what follows
			}
		}
	}
	l.offset += len(text)
}

// finish gives the token that the end of the text closes.
func (s *Scanner) finish() {
	switch l := &s.lexer; l.state {
	case inWord:
		s.emit(tokenWord, l.offset)
	case afterQuote:
		s.emit(tokenString, l.offset)
	case afterNameQuote:
		s.emit(tokenName, l.offset)
	}
	s.token(tokenSymbol, ';', s.lexer.offset, s.lexer.offset)
}

// lower gives letters of ASCII in lower case, as the server does with names.
var lower = func() (l [256]byte) {
	for i := range l {
		if l[i] = byte(i); i >= 'A' && i <= 'Z' {
			l[i] += 'a' - 'A'
		}
	}
	return l
}()

func (l *lexer) keep(c byte) {
	if l.length < wordBytesMax {
		l.word[l.length] = c
	}
	l.length++
}

func (l *lexer) open(state lexState, at int) {
	l.state, l.start, l.length = state, at, 0
}

// emit gives the word or string that was kept.
func (s *Scanner) emit(kind tokenKind, end int) {
	s.lexer.state = inCode
	s.token(kind, 0, s.lexer.start, end)
}

// code looks at a byte outside of everything.
func (s *Scanner) code(c byte, at int) {
	l := &s.lexer
	class := classes[c]
	if class&isSpace != 0 {
		return
	}
	continued := l.escapes
	l.escapes = false
	switch {
	case class&isFirst != 0:
		l.open(inWord, at)
		l.keep(lower[c])
	case class&isDigit != 0:
		l.open(inNumber, at)
	case c == '\'':
		l.open(inString, at)
		l.escapes = l.backslash || continued
	case c == '"':
		l.open(inName, at)
	case c == '-':
		l.open(afterDash, at)
	case c == '/':
		l.open(afterSlash, at)
	case c == '$':
		l.open(inTag, at)
		l.tagged = 0
	default:
		s.token(tokenSymbol, c, at, at+1)
	}
}

// quoted looks at a byte within strings, names and comments. again says that the byte was not
// part of it.
func (l *lexer) quoted(s *Scanner, c byte, at int) (again bool) {
	switch l.state {
	case inString:
		switch {
		case c == '\'':
			l.state = afterQuote
		case c == '\\' && l.escapes:
			l.state = inStringEscape
		default:
			l.keep(c)
		}
	case inStringEscape:
		l.keep(c)
		l.length = max(l.length, wordBytesMax+1) // not worth reading: no name that matters
		l.state = inString
	case afterQuote:
		if c == '\'' {
			l.keep(c)
			l.state = inString
			return false
		}
		escapes := l.escapes
		s.emit(tokenString, at)
		l.escapes = escapes
		return true
	case inName:
		if c == '"' {
			l.state = afterNameQuote
			return false
		}
		l.keep(c)
	case afterNameQuote:
		if c == '"' {
			l.keep(c)
			l.state = inName
			return false
		}
		s.emit(tokenName, at)
		return true
	default:
		return l.aside(s, c)
	}
	return false
}

// aside looks at a byte within comments and dollar quotes, or before one may begin.
func (l *lexer) aside(s *Scanner, c byte) (again bool) {
	switch l.state {
	case afterDash, afterSlash:
		return l.maybeComment(s, c)
	case inLine:
		if c == '\n' || c == '\r' {
			l.state = inCode
		}
	case inComment:
		switch c {
		case '*':
			l.state = inCommentStar
		case '/':
			l.state = inCommentSlash
		}
	case inCommentStar:
		switch {
		case c == '/':
			if l.depth--; l.depth == 0 {
				l.state = inCode
			} else {
				l.state = inComment
			}
		case c != '*':
			l.state = inComment
		}
	case inCommentSlash:
		switch {
		case c == '*':
			l.depth++
			l.state = inComment
		case c != '/':
			l.state = inComment
		}
	default:
		return l.dollar(s, c)
	}
	return false
}

func (l *lexer) maybeComment(s *Scanner, c byte) (again bool) {
	switch {
	case l.state == afterDash && c == '-':
		l.state = inLine
	case l.state == afterSlash && c == '*':
		l.state, l.depth = inComment, 1
	default:
		l.state = inCode
		s.token(tokenSymbol, '-', l.start, l.start+1)
		return true
	}
	return false
}

// dollar looks at a byte of $tag$body$tag$. The body of DO is read as code.
func (l *lexer) dollar(s *Scanner, c byte) (again bool) {
	switch l.state {
	case inTag:
		class := classes[c]
		switch {
		case c == '$' && s.first == wordDo:
			l.state = inCode
			s.statement = statement{first: wordDo}
		case c == '$':
			l.state = inBody
		case l.tagged == 0 && class&isDigit != 0:
			l.state = inNumber // a parameter
		case class&isWord != 0 && l.tagged < wordBytesMax:
			l.tag[l.tagged] = c
			l.tagged++
		default:
			l.state = inCode
			s.token(tokenSymbol, '$', l.start, l.start+1)
			return true
		}
	case inBody:
		if c == '$' {
			l.state, l.matched = inBodyEnd, 0
		}
	case inBodyEnd:
		switch {
		case l.matched < l.tagged && c == l.tag[l.matched]:
			l.matched++
		case l.matched == l.tagged && c == '$':
			l.length = wordBytesMax + 1
			s.emit(tokenString, l.start)
		case c == '$':
			l.matched = 0
		default:
			l.state = inBody
		}
	}
	return false
}

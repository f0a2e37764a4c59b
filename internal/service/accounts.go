package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kurabe/internal/account"
)

// noAccounts is the value of --account-ids that gives no instance a user of its own.
const NoAccounts = "none"

// openAccounts opens the book of user ids below the service's folder; nil without root, where all is one user's.
func openAccounts(seen, ids string) (*account.Book, error) {
	if os.Getuid() != 0 {
		if ids != "" && ids != NoAccounts {
			return nil, errors.New("--account-ids needs root, which alone may run programs as other users")
		}
		return nil, nil
	}
	o := account.Options{Off: ids == NoAccounts, Etc: "/etc"}
	if ids != "" && !o.Off {
		var err error
		if o.Span, err = account.ParseSpan(ids); err != nil {
			return nil, fmt.Errorf("--account-ids %w", err)
		}
	}
	book, err := account.Open(filepath.Join(seen, "accounts.json"), o)
	if err != nil {
		return nil, fmt.Errorf("--account-ids: %w", err)
	}
	return book, nil
}

package kurabe

import (
	"context"

	"kurabe"
	"kurabe/internal/importer"
)

// StartImportInput names the repository by its id, or none: the service's own is meant.
type StartImportInput struct{ RepositoryID string }

// ImportOutput is the state of an import.
type ImportOutput struct {
	Import importer.Progress
}

// startImport refuses at once what can be told at once.
func (a API) startImport(_ context.Context, in *StartImportInput) (*ImportOutput, error) {
	if err := a.CheckImport(in.RepositoryID); err != nil {
		return nil, err
	}
	return &ImportOutput{a.Importer.Begin()}, nil
}

// DescribeImportInput names an import, and the first of its results that is wanted.
type DescribeImportInput struct {
	Job  string
	From int
}

func (a API) describeImport(_ context.Context, in *DescribeImportInput) (*ImportOutput, error) {
	p, ok := a.Importer.Look(in.Job, in.From)
	if !ok {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "There is no such import: the service was restarted, or another import was begun since.")
	}
	return &ImportOutput{p}, nil
}

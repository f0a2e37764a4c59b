package secretsmanager

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"kurabe"
	"kurabe/internal/aws/fault"
	"kurabe/internal/control/secret"
)

func (s service) get(ctx context.Context, in *secretsmanager.GetSecretValueInput) (*secretsmanager.GetSecretValueOutput, error) {
	o, err := s.secrets.Read(ctx, aws.ToString(in.SecretId), kurabe.SecretVersionID(aws.ToString(in.VersionId)), aws.ToString(in.VersionStage))
	if err != nil {
		return nil, err
	}
	out := &secretsmanager.GetSecretValueOutput{
		ARN: &o.Secret.ARN, Name: &o.Secret.Name, VersionId: idOf(o.Version.ID), VersionStages: o.Version.Stages, CreatedDate: &o.Version.CreatedAt,
	}
	out.SecretString, out.SecretBinary = reveal(o.Value)
	return out, nil
}

// reveal is the value of an answer.
func reveal(v secret.Value) (text *string, binary []byte) {
	if v.Binary {
		return nil, []byte(v.Secret.Reveal())
	}
	return aws.String(v.Secret.Reveal()), nil
}

// batchMax is Secrets Manager's bound of a batch.
const batchMax = 20

func (s service) getBatch(ctx context.Context, in *secretsmanager.BatchGetSecretValueInput) (*secretsmanager.BatchGetSecretValueOutput, error) {
	ids := in.SecretIdList
	var next *string
	switch {
	case len(ids) > 0 && len(in.Filters) > 0:
		return nil, invalid("Either 'SecretIdList' or 'Filters' must be provided, but not both.")
	case in.MaxResults != nil && len(in.Filters) == 0:
		return nil, invalid("'Filters' not specified. 'Filters' must also be specified when 'MaxResults' is provided.")
	case len(ids) == 0 && len(in.Filters) == 0:
		return nil, invalid("Either 'SecretIdList' or 'Filters' must be provided.")
	case len(ids) > batchMax:
		return nil, invalid("'SecretIdList' has at most %d secrets.", batchMax)
	case len(ids) == 0:
		filters, err := filtersOf(in.Filters)
		if err != nil {
			return nil, err
		}
		list, token, err := page(s.secrets.List(filters, false, secret.Order{}), in.NextToken, in.MaxResults, batchMax)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			ids = append(ids, one.ARN)
		}
		next = token
	}
	out := &secretsmanager.BatchGetSecretValueOutput{SecretValues: []types.SecretValueEntry{}, Errors: []types.APIErrorType{}, NextToken: next}
	for _, id := range ids {
		o, err := s.secrets.Read(ctx, id, "", "")
		code := map[kurabe.Code]string{
			kurabe.CodeResourceNotFound: "ResourceNotFoundException", kurabe.CodeInvalidInstanceState: "InvalidRequestException", kurabe.CodeSecretSealed: "DecryptionFailure",
		}[kurabe.CodeOf(err)]
		switch {
		case err == nil:
			entry := types.SecretValueEntry{
				ARN: &o.Secret.ARN, Name: &o.Secret.Name, VersionId: idOf(o.Version.ID), VersionStages: o.Version.Stages, CreatedDate: &o.Version.CreatedAt,
			}
			entry.SecretString, entry.SecretBinary = reveal(o.Value)
			out.SecretValues = append(out.SecretValues, entry)
		case code != "":
			out.Errors = append(out.Errors, types.APIErrorType{SecretId: &id, ErrorCode: &code, Message: aws.String(err.(*kurabe.Error).Message)})
		default:
			return nil, err
		}
	}
	return out, nil
}

func filtersOf(list []types.Filter) (out []secret.Filter, err error) {
	for n, f := range list {
		if f.Key == "" {
			return nil, invalid("Invalid filter key")
		}
		if !slices.Contains(secret.FilterKeys, string(f.Key)) {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "1 validation error detected: Value '%.100s' at 'filters.%d.member.key' failed to satisfy constraint: Member must satisfy enum value set: [%s]", f.Key, n+1, strings.Join(secret.FilterKeys, ", "))
		}
		if len(f.Values) == 0 {
			return nil, invalid("Invalid filter values for key: %s", f.Key)
		}
		out = append(out, secret.Filter{Key: string(f.Key), Values: f.Values})
	}
	return out, nil
}

// page cuts a page of a list; the token is its place.
func page[T any](list []T, token *string, limit *int32, most int) ([]T, *string, error) {
	size, at := most, 0
	if limit != nil {
		size = int(*limit)
	}
	if size < 1 || size > most {
		return nil, nil, invalid("MaxResults must be between 1 and %d.", most)
	}
	if token != nil {
		var err error
		if at, err = strconv.Atoi(*token); err != nil || at < 0 {
			return nil, nil, fault.New(400, "InvalidNextTokenException", "The NextToken value is invalid.")
		}
	}
	at = min(at, len(list))
	if end := at + size; end < len(list) {
		return list[at:end], aws.String(strconv.Itoa(end)), nil
	}
	return list[at:], nil, nil
}

// present is a time of an answer, nil for none.
func present(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func text(t string) *string {
	if t == "" {
		return nil
	}
	return &t
}

// stagesOf has the versions that have a stage.
func stagesOf(one kurabe.Secret) map[string][]string {
	stages := map[string][]string{}
	for _, v := range one.Versions {
		if len(v.Stages) > 0 {
			stages[string(v.ID)] = v.Stages
		}
	}
	if len(stages) == 0 {
		return nil
	}
	return stages
}

func (s service) entry(one kurabe.Secret) types.SecretListEntry {
	e := types.SecretListEntry{
		ARN: &one.ARN, Name: &one.Name, Description: text(one.Description), KmsKeyId: text(one.KMSKey), OwningService: text(secret.OwningService(one)),
		CreatedDate: &one.CreatedAt, LastChangedDate: &one.ChangedAt, LastAccessedDate: present(one.AccessedAt), DeletedDate: present(one.DeletedAt),
		SecretVersionsToStages: stagesOf(one),
	}
	for _, tag := range s.secrets.Tags(one) {
		e.Tags = append(e.Tags, types.Tag{Key: &tag.Key, Value: &tag.Value})
	}
	if m := one.Master; m != nil {
		e.RotationEnabled, e.LastRotatedDate, e.NextRotationDate = aws.Bool(true), present(m.RotatedAt), present(m.NextAt)
		e.RotationRules = &types.RotationRulesType{AutomaticallyAfterDays: aws.Int64(int64(m.Days))}
	}
	return e
}

func (s service) describe(_ context.Context, in *secretsmanager.DescribeSecretInput) (*secretsmanager.DescribeSecretOutput, error) {
	r, err := s.secrets.Find(aws.ToString(in.SecretId))
	if err != nil {
		return nil, err
	}
	e := s.entry(r.Value)
	return &secretsmanager.DescribeSecretOutput{
		ARN: e.ARN, Name: e.Name, Description: e.Description, KmsKeyId: e.KmsKeyId, OwningService: e.OwningService, CreatedDate: e.CreatedDate,
		LastChangedDate: e.LastChangedDate, LastAccessedDate: e.LastAccessedDate, DeletedDate: e.DeletedDate, VersionIdsToStages: e.SecretVersionsToStages, Tags: e.Tags,
		RotationEnabled: e.RotationEnabled, RotationRules: e.RotationRules, LastRotatedDate: e.LastRotatedDate, NextRotationDate: e.NextRotationDate,
	}, nil
}

const listMax = 100

func (s service) list(_ context.Context, in *secretsmanager.ListSecretsInput) (*secretsmanager.ListSecretsOutput, error) {
	filters, err := filtersOf(in.Filters)
	if err != nil {
		return nil, err
	}
	if in.SortBy != "" && !slices.Contains(in.SortBy.Values(), in.SortBy) || in.SortOrder != "" && !slices.Contains(in.SortOrder.Values(), in.SortOrder) {
		return nil, invalid("SortBy is one of %v, and SortOrder one of %v.", in.SortBy.Values(), in.SortOrder.Values())
	}
	order := secret.Order{By: string(in.SortBy), Descending: in.SortOrder == types.SortOrderTypeDesc}
	list, next, err := page(s.secrets.List(filters, aws.ToBool(in.IncludePlannedDeletion), order), in.NextToken, in.MaxResults, listMax)
	if err != nil {
		return nil, err
	}
	out := &secretsmanager.ListSecretsOutput{SecretList: []types.SecretListEntry{}, NextToken: next}
	for _, one := range list {
		out.SecretList = append(out.SecretList, s.entry(one))
	}
	return out, nil
}

func (s service) listVersions(_ context.Context, in *secretsmanager.ListSecretVersionIdsInput) (*secretsmanager.ListSecretVersionIdsOutput, error) {
	r, err := s.secrets.Find(aws.ToString(in.SecretId))
	if err != nil {
		return nil, err
	}
	versions := slices.DeleteFunc(slices.Clone(r.Value.Versions), func(v kurabe.SecretVersion) bool {
		return len(v.Stages) == 0 && !aws.ToBool(in.IncludeDeprecated)
	})
	versions, next, err := page(versions, in.NextToken, in.MaxResults, listMax)
	if err != nil {
		return nil, err
	}
	out := &secretsmanager.ListSecretVersionIdsOutput{ARN: &r.Value.ARN, Name: &r.Value.Name, Versions: []types.SecretVersionsListEntry{}, NextToken: next}
	for _, v := range versions {
		out.Versions = append(out.Versions, types.SecretVersionsListEntry{
			VersionId: idOf(v.ID), VersionStages: v.Stages, CreatedDate: &v.CreatedAt, LastAccessedDate: present(v.AccessedAt), KmsKeyIds: []string{"DefaultEncryptionKey"},
		})
	}
	return out, nil
}

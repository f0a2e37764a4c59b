package secretsmanager

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/aws/shape"
	"kurabe/internal/control"
	"kurabe/internal/control/secret"
	"kurabe/internal/logkey"
)

type service struct {
	c       *control.Control
	secrets secret.Secrets
}

// API returns the service.
func API(c *control.Control) api.Service {
	s := service{c, c.Secrets}
	return api.Service{
		Name: shape.Secrets.Service, Protocols: []api.Protocol{api.JSON{Target: "secretsmanager", Version: "1.1", Model: shape.Secrets}},
		Ops: api.Table(
			api.Write("CreateSecret", s.create),
			api.Write("PutSecretValue", s.put),
			api.Write("UpdateSecret", s.update),
			api.Write("UpdateSecretVersionStage", s.restage),
			api.Write("DeleteSecret", s.delete),
			api.Write("RestoreSecret", s.restore),
			api.Write("TagResource", s.tag),
			api.Write("UntagResource", s.untag),
			api.Write("RotateSecret", s.rotate),
			api.Read("GetSecretValue", s.get),
			api.Read("BatchGetSecretValue", s.getBatch),
			api.Read("DescribeSecret", s.describe),
			api.Read("ListSecrets", s.list),
			api.Read("ListSecretVersionIds", s.listVersions),
			api.Read("GetRandomPassword", s.randomPassword),
			api.Read("GetResourcePolicy", s.policy),
		),
		Errors: api.Errors{
			kurabe.CodeInvalidParameterValue: {Code: "InvalidParameterException", Status: 400},
			kurabe.CodeInvalidParameterCombo: {Code: "ValidationException", Status: 400},
			kurabe.CodeInvalidInstanceState:  {Code: "InvalidRequestException", Status: 400},
			kurabe.CodeResourceNotFound:      {Code: "ResourceNotFoundException", Status: 400},
			kurabe.CodeInstanceExists:        {Code: "ResourceExistsException", Status: 400},
			kurabe.CodeInstanceQuota:         {Code: "LimitExceededException", Status: 400},
			kurabe.CodeSecretSealed:          {Code: "DecryptionFailure", Status: 400},
			kurabe.CodeThrottled:             {Code: "ThrottlingException", Status: 400},
			kurabe.CodeInternal:              {Code: "InternalServiceError", Status: 500},
		},
		NotOffered: notOffered,
	}
}

func notOffered(action string) string {
	switch {
	case strings.Contains(action, "Policy"):
		return "whoever has the service's credentials may do everything, and nobody else may do anything"
	case strings.Contains(action, "Repli"):
		return "there is one region: secrets are in the state store of the service, which its servers replicate"
	}
	return "there are no functions of Lambda that could rotate a secret; put a new value, or have RDS manage the password of a master user, which rotates it"
}

func invalid(format string, args ...any) error {
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, format, args...)
}

// refuse says why a member of a request cannot be honoured; "" is one that is not there.
func refuse(members map[string]string) error {
	for name, why := range members {
		if why != "" {
			return invalid("%s: %s", name, why)
		}
	}
	return nil
}

// because is a reason if it is asked for what it refuses.
func because(asked bool, why string) string {
	if asked {
		return why
	}
	return ""
}

const (
	noReplicas = "there are no other regions; the servers of the service replicate secrets"
	noTypes    = "secrets of other services are not offered"
	noRoles    = "rotation of secrets of other accounts is not offered"
)

// valueOf reads the value of a request, nil if there is none.
func valueOf(text *string, binary []byte) (*secret.Value, error) {
	switch {
	case text != nil && binary != nil:
		return nil, invalid("You can't specify both a binary secret value and a string secret value in the same secret.")
	case text != nil:
		return &secret.Value{Secret: logkey.Secret(*text)}, nil
	case binary != nil:
		return &secret.Value{Secret: logkey.Secret(binary), Binary: true}, nil
	}
	return nil, nil
}

func tagsOf(list []types.Tag) (out []kurabe.Tag) {
	for _, tag := range list {
		out = append(out, kurabe.Tag{Key: aws.ToString(tag.Key), Value: aws.ToString(tag.Value)})
	}
	return out
}

// idOf is the id of a version, nil where there is none.
func idOf(id kurabe.SecretVersionID) *string {
	if id == "" {
		return nil
	}
	return aws.String(string(id))
}

func (s service) create(ctx context.Context, in *secretsmanager.CreateSecretInput) (*secretsmanager.CreateSecretOutput, error) {
	if err := refuse(map[string]string{
		"AddReplicaRegions": because(len(in.AddReplicaRegions) > 0, noReplicas), "ForceOverwriteReplicaSecret": because(in.ForceOverwriteReplicaSecret, noReplicas),
		"Type": because(aws.ToString(in.Type) != "", noTypes),
	}); err != nil {
		return nil, err
	}
	value, err := valueOf(in.SecretString, in.SecretBinary)
	if err != nil {
		return nil, err
	}
	made, version, err := s.secrets.Create(ctx, secret.New{
		Name: aws.ToString(in.Name), Description: aws.ToString(in.Description), Token: aws.ToString(in.ClientRequestToken), KMSKey: in.KmsKeyId,
		Tags: tagsOf(in.Tags), Value: value,
	})
	return &secretsmanager.CreateSecretOutput{ARN: &made.ARN, Name: &made.Name, VersionId: idOf(version)}, err
}

func (s service) put(ctx context.Context, in *secretsmanager.PutSecretValueInput) (*secretsmanager.PutSecretValueOutput, error) {
	if err := refuse(map[string]string{"RotationToken": because(in.RotationToken != nil, noRoles)}); err != nil {
		return nil, err
	}
	value, err := valueOf(in.SecretString, in.SecretBinary)
	if err == nil && value == nil {
		err = kurabe.Errorf(kurabe.CodeInvalidInstanceState, "You must provide either SecretString or SecretBinary.")
	}
	if err != nil {
		return nil, err
	}
	stages := in.VersionStages
	if stages == nil {
		stages = []string{kurabe.StageCurrent}
	}
	made, id, err := s.secrets.Edit(ctx, aws.ToString(in.SecretId), secret.Edit{Token: aws.ToString(in.ClientRequestToken), Value: value, Stages: stages})
	version, _ := made.Version(id)
	return &secretsmanager.PutSecretValueOutput{ARN: &made.ARN, Name: &made.Name, VersionId: idOf(id), VersionStages: version.Stages}, err
}

func (s service) update(ctx context.Context, in *secretsmanager.UpdateSecretInput) (*secretsmanager.UpdateSecretOutput, error) {
	if err := refuse(map[string]string{"Type": because(aws.ToString(in.Type) != "", noTypes)}); err != nil {
		return nil, err
	}
	value, err := valueOf(in.SecretString, in.SecretBinary)
	if err != nil {
		return nil, err
	}
	made, version, err := s.secrets.Edit(ctx, aws.ToString(in.SecretId), secret.Edit{
		Token: aws.ToString(in.ClientRequestToken), Description: in.Description, KMSKey: in.KmsKeyId, Value: value, Stages: []string{kurabe.StageCurrent},
	})
	return &secretsmanager.UpdateSecretOutput{ARN: &made.ARN, Name: &made.Name, VersionId: idOf(version)}, err
}

func (s service) restage(ctx context.Context, in *secretsmanager.UpdateSecretVersionStageInput) (*secretsmanager.UpdateSecretVersionStageOutput, error) {
	made, err := s.secrets.Restage(ctx, aws.ToString(in.SecretId), aws.ToString(in.VersionStage),
		kurabe.SecretVersionID(aws.ToString(in.RemoveFromVersionId)), kurabe.SecretVersionID(aws.ToString(in.MoveToVersionId)))
	return &secretsmanager.UpdateSecretVersionStageOutput{ARN: &made.ARN, Name: &made.Name}, err
}

func (s service) delete(ctx context.Context, in *secretsmanager.DeleteSecretInput) (*secretsmanager.DeleteSecretOutput, error) {
	gone, err := s.secrets.Delete(ctx, aws.ToString(in.SecretId), in.RecoveryWindowInDays, aws.ToBool(in.ForceDeleteWithoutRecovery))
	return &secretsmanager.DeleteSecretOutput{ARN: &gone.ARN, Name: &gone.Name, DeletionDate: &gone.DeleteAfter}, err
}

func (s service) restore(ctx context.Context, in *secretsmanager.RestoreSecretInput) (*secretsmanager.RestoreSecretOutput, error) {
	back, err := s.secrets.Restore(ctx, aws.ToString(in.SecretId))
	return &secretsmanager.RestoreSecretOutput{ARN: &back.ARN, Name: &back.Name}, err
}

func (s service) tag(ctx context.Context, in *secretsmanager.TagResourceInput) (*secretsmanager.TagResourceOutput, error) {
	return &secretsmanager.TagResourceOutput{}, s.secrets.Tag(ctx, aws.ToString(in.SecretId), tagsOf(in.Tags))
}

func (s service) untag(ctx context.Context, in *secretsmanager.UntagResourceInput) (*secretsmanager.UntagResourceOutput, error) {
	return &secretsmanager.UntagResourceOutput{}, s.secrets.Untag(ctx, aws.ToString(in.SecretId), in.TagKeys)
}

// rotate is for secrets that RDS manages; Terraform changes their days with it.
func (s service) rotate(ctx context.Context, in *secretsmanager.RotateSecretInput) (*secretsmanager.RotateSecretOutput, error) {
	days := int64(0)
	rules := in.RotationRules
	if rules != nil && rules.AutomaticallyAfterDays != nil {
		days = *rules.AutomaticallyAfterDays
	}
	if err := refuse(map[string]string{
		"RotationLambdaARN":                because(aws.ToString(in.RotationLambdaARN) != "", "there are no functions of Lambda"),
		"RotationRules.ScheduleExpression": because(rules != nil && rules.ScheduleExpression != nil, "only AutomaticallyAfterDays is offered"),
		"RotationRules.Duration":           because(rules != nil && rules.Duration != nil, "a rotation takes seconds; there are no windows"),
		"ExternalSecretRotationMetadata":   because(in.ExternalSecretRotationMetadata != nil, noRoles), "ExternalSecretRotationRoleArn": because(in.ExternalSecretRotationRoleArn != nil, noRoles),
	}); err != nil {
		return nil, err
	}
	if rules != nil && rules.AutomaticallyAfterDays != nil && (days < 1 || days > secret.RotationDaysMax) {
		return nil, invalid("RotationRules.AutomaticallyAfterDays must be within 1-%d.", secret.RotationDaysMax)
	}
	made, err := s.c.RotateSecret(ctx, aws.ToString(in.SecretId), int(days), in.RotateImmediately == nil || *in.RotateImmediately)
	if err != nil {
		return nil, err
	}
	newest := made.Versions[len(made.Versions)-1]
	return &secretsmanager.RotateSecretOutput{ARN: &made.ARN, Name: &made.Name, VersionId: idOf(newest.ID)}, nil
}

func (s service) randomPassword(_ context.Context, in *secretsmanager.GetRandomPasswordInput) (*secretsmanager.GetRandomPasswordOutput, error) {
	const usual = 32
	length := int64(usual)
	if in.PasswordLength != nil {
		length = *in.PasswordLength
	}
	password, err := secret.RandomPassword(secret.PasswordForm{
		Length: int(min(length, secret.PasswordLengthMax+1)), Exclude: aws.ToString(in.ExcludeCharacters),
		NoNumbers: aws.ToBool(in.ExcludeNumbers), NoPunctuation: aws.ToBool(in.ExcludePunctuation), NoUppercase: aws.ToBool(in.ExcludeUppercase),
		NoLowercase: aws.ToBool(in.ExcludeLowercase), Space: aws.ToBool(in.IncludeSpace),
		AnyOfTypes: in.RequireEachIncludedType != nil && !*in.RequireEachIncludedType,
	})
	return &secretsmanager.GetRandomPasswordOutput{RandomPassword: aws.String(password.Reveal())}, err
}

// policy answers that there is none: Terraform asks for each secret.
func (s service) policy(_ context.Context, in *secretsmanager.GetResourcePolicyInput) (*secretsmanager.GetResourcePolicyOutput, error) {
	r, err := s.secrets.Find(aws.ToString(in.SecretId))
	return &secretsmanager.GetResourcePolicyOutput{ARN: &r.Value.ARN, Name: &r.Value.Name}, err
}

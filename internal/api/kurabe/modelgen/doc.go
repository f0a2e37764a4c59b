// Command modelgen writes the model of the service "kurabe", from which botocore makes a client, to
// the file that it is given. With AWS_DATA_PATH=docs/models, boto3.client("kurabe") finds it there.
//
// It reads the Go types of the inputs and outputs, and is no part of the product. Called by make
// gen. Invariant: TestModelIsCurrent holds the file to the types.
package main

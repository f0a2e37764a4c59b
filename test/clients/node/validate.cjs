// Checks a document of SNS on standard input with the validator of AWS's own project. It is a
// process of its own because Node reads the authorities that it trusts at its start.
const Validator = require("sns-validator");

let text = "";
process.stdin.on("data", (part) => (text += part));
process.stdin.on("end", () => {
  new Validator(new RegExp(process.argv[2])).validate(text, (error, message) => console.log(error ? error.message : `valid ${message.Type} ${message.SignatureVersion}`));
});

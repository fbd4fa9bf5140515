/** Name of an output's file in the folder of its run. */
export function outputFile(name: string, fileName: string): string {
  return `output.${name}.${fileName}`
}

/** The same while the file is written from its start to its end. What is in it stays as it is, but for the lengths that its header states. */
export function growingOutputFile(name: string, fileName: string): string {
  return `${outputFile(name, fileName)}.part`
}

import { readFileSync } from 'node:fs'
import { packageFile } from '../core/engine/package-files.js'

export function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version
}

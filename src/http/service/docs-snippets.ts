import type { Operation } from './openapi.js'

/** One request in curl and in JavaScript. */
export interface Snippets {
  curl: string
  javaScript: string
}

/** Facts about a request that both snippets need. */
interface SampleRequest {
  method: string
  url: string
  needsKey: boolean
  /** The JSON body. */
  json: string | undefined
  isUpload: boolean
  /** Whether a file is received. */
  isDownload: boolean
  /** Media types of the answer. */
  answers: readonly string[]
}

/** @param body an example of the JSON body, if the operation takes one */
export function snippetsOf(base: string, method: string, path: string, operation: Operation, body?: unknown): Snippets {
  const isSigned = operation.security.some((one) => 'signedLink' in one)
  const isUpload = operation.requestBody !== undefined && body === undefined
  const link = isUpload ? 'UPLOAD_URL' : 'LINK'
  const request: SampleRequest = {
    method,
    url: isSigned ? link : base + path.replace(/\{(\w+)\}/g, (_, name) => sample(name)),
    needsKey: operation.security.some((one) => 'apiKey' in one),
    json: body === undefined ? undefined : JSON.stringify(body, null, 2),
    isUpload,
    isDownload: isSigned && !isUpload,
    answers: Object.keys(operation.responses['200']?.content ?? {}),
  }
  return { curl: curl(request), javaScript: javaScript(request) }
}

function curl({ method, url, needsKey, json, isUpload, isDownload, answers }: SampleRequest): string {
  const needsMethod = method !== 'GET' && json === undefined && !isUpload
  const command = [
    'curl',
    needsMethod && `-X ${method}`,
    answers.includes('text/event-stream') && '-N',
    isUpload && '-T song.mp3',
    `"${url}"`,
  ]
  const lines = [
    command.filter(Boolean).join(' '),
    needsKey && '-H "Authorization: $STEMWORK_KEY"',
    json !== undefined && `-H 'Content-Type: application/json' \\\n  -d '${json}'`,
    isDownload && '-OJ',
  ]
  return lines.filter(Boolean).join(' \\\n  ')
}

function javaScript({ method, url, needsKey, json, isUpload, answers }: SampleRequest): string {
  const headers = [
    needsKey && 'authorization: process.env.STEMWORK_KEY',
    json !== undefined && "'content-type': 'application/json'",
  ].filter(Boolean)
  const options = [
    method !== 'GET' && `method: '${method}'`,
    headers.length > 0 && `headers: { ${headers.join(', ')} }`,
    json !== undefined && `body: JSON.stringify(${json.replaceAll('\n', '\n  ')})`,
    isUpload && "body: await openAsBlob('song.mp3')",
  ].filter(Boolean)
  const argument = options.length > 0 ? `, {\n  ${options.join(',\n  ')},\n}` : ''
  const read = answers.includes('application/json') ? 'await response.json()' : 'response.status'
  const imported = isUpload ? "import { openAsBlob } from 'node:fs'\n\n" : ''
  return `${imported}const response = await fetch('${url}'${argument})\nconsole.log(${read})`
}

function sample(name: string): string {
  return { id: 'JOB_ID', output: 'vocals' }[name] ?? name.toUpperCase()
}

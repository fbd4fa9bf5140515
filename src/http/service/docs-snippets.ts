import type { Operation } from './openapi.js'

/** One request by curl and by JavaScript. */
export interface Snippets {
  curl: string
  javaScript: string
}

/** @param body an example of the JSON body, if the operation takes one */
export function snippetsOf(base: string, method: string, path: string, operation: Operation, body?: unknown): Snippets {
  const needsKey = operation.security.some((one) => 'apiKey' in one)
  const isSigned = operation.security.some((one) => 'signedLink' in one)
  const isUpload = operation.requestBody !== undefined && body === undefined
  const url = isSigned
    ? isUpload
      ? 'UPLOAD_URL'
      : 'LINK'
    : base + path.replace(/\{(\w+)\}/g, (_, name) => sample(name))
  const json = body === undefined ? undefined : JSON.stringify(body, null, 2)
  const isStream = '200' in operation.responses && 'text/event-stream' in (operation.responses['200']?.content ?? {})

  const curl = [
    `curl${method === 'GET' || json || isUpload ? '' : ` -X ${method}`}${isStream ? ' -N' : ''}` +
      `${isUpload ? ' -T song.mp3' : ''} "${url}"`,
    ...(needsKey ? ['-H "Authorization: $STEMWORK_KEY"'] : []),
    ...(json ? ["-H 'Content-Type: application/json'", `-d '${json}'`] : []),
    ...(isSigned && !isUpload ? ['-OJ'] : []),
  ].join(' \\\n  ')

  const headers = [
    ...(needsKey ? ['authorization: process.env.STEMWORK_KEY'] : []),
    ...(json ? ["'content-type': 'application/json'"] : []),
  ]
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(headers.length > 0 ? [`headers: { ${headers.join(', ')} }`] : []),
    ...(json ? [`body: JSON.stringify(${json.replaceAll('\n', '\n  ')})`] : []),
    ...(isUpload ? ["body: await openAsBlob('song.mp3')"] : []),
  ]
  const argument = options.length > 0 ? `, {\n  ${options.join(',\n  ')},\n}` : ''
  const contents = operation.responses['200']?.content ?? {}
  const read = 'application/json' in contents ? 'await response.json()' : 'response.status'
  const javaScript =
    `${isUpload ? "import { openAsBlob } from 'node:fs'\n\n" : ''}const response = await ` +
    `fetch('${url}'${argument})\nconsole.log(${read})`
  return { curl, javaScript }
}

function sample(name: string): string {
  return { id: 'JOB_ID', output: 'vocals' }[name] ?? name.toUpperCase()
}

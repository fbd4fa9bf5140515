import { useRef, useState } from 'preact/hooks'
import { Button } from '../elements/button.js'
import type { Job } from '../../client/client.js'
import { copyText } from '../elements/copy-text.js'
import { Segments } from '../elements/filter-controls.js'
import { useMessages } from '../elements/messages.js'
import { baseUrl } from '../session/session.js'

const languages = [
  ['curl', 'curl'],
  ['JavaScript', 'JavaScript'],
] as const
type Language = (typeof languages)[number][0]

/** The same job from a program. The reader fills in the key and the input. */
export function Snippets({ job }: { job: Job }) {
  const [language, setLanguage] = useState<Language>('curl')
  const { show } = useMessages()
  const shown = useRef<HTMLPreElement>(null)
  const text = language === 'curl' ? curlOf(job) : javaScriptOf(job)
  return (
    <section class="card screen" aria-labelledby="snippets-title">
      <div class="line">
        <h2 id="snippets-title">Do the same from a program</h2>
        <Segments legend="Language" choices={languages} chosen={language} onChange={setLanguage} />
      </div>
      <pre ref={shown} tabIndex={0}>
        {text}
      </pre>
      <p>
        <Button onClick={() => void copyText(shown.current).then((words) => show({ text: words }))}>Copy</Button>
      </p>
    </section>
  )
}

function jobBody({ workflow, name, batchName, workflowParams }: Job, inputUrl: string): Record<string, unknown> {
  const isUploaded = typeof workflowParams.inputUrl === 'string' && workflowParams.inputUrl.startsWith(baseUrl)
  return {
    workflow: workflow.id,
    ...(name === null ? {} : { name }),
    ...(batchName === null ? {} : { batchName }),
    params: { ...workflowParams, ...(isUploaded ? { inputUrl } : {}) },
  }
}

function curlOf(job: Job): string {
  const body = JSON.stringify(jobBody(job, 'DOWNLOAD_URL'), null, 2).replaceAll("'", String.raw`'\''`)
  return `# Get an upload link and a download link. Send the file to uploadUrl; use downloadUrl as the input.
curl -H "Authorization: $STEMWORK_KEY" ${baseUrl}/upload
curl -T song.mp3 "UPLOAD_URL"

curl -H "Authorization: $STEMWORK_KEY" -H 'Content-Type: application/json' \\
  ${baseUrl}/job -d '${body}'

# Wait until the job has ended (up to 60 seconds for each request), then read the links in "result".
curl -H "Authorization: $STEMWORK_KEY" -H 'Prefer: wait=60' ${baseUrl}/job/JOB_ID`
}

function javaScriptOf(job: Job): string {
  const body = JSON.stringify(jobBody(job, 'DOWNLOAD_URL'), null, 2).replace('"DOWNLOAD_URL"', 'downloadUrl')
  return `import { openAsBlob } from 'node:fs'
import { createClient } from 'stemwork/client'

const client = createClient({ baseUrl: '${baseUrl}', apiKey: process.env.STEMWORK_KEY })
const { downloadUrl } = await client.upload(await openAsBlob('song.mp3'))
const { id } = await client.createJob(${body})
const { result } = await client.waitForJob(id)
console.log(result)`
}

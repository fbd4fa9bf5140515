import { z } from 'zod'
import { empty, json } from '../routing/answer.js'
import { prefersHtml } from '../routing/prefers-html.js'
import { defineRoute } from '../routing/route.js'

const indexSchema = z.object({ name: z.string(), links: z.record(z.string(), z.string()) }).meta({ id: 'Index' })

/** The address that people type first. Browsers are redirected to a page; programs get links. */
export const indexRoute = defineRoute({
  route: 'GET /',
  operation: 'getIndex',
  summary: 'List the entry points of the service',
  description: 'Redirects browsers to a page, if the service has one.',
  access: 'open',
  atRoot: true,
  answer: { description: 'The addresses of the documentation and the pages.', schema: indexSchema },
  otherAnswers: { 307: 'To the console or the documentation, for a client that prefers HTML.' },
  async handle(call) {
    const { console: hasConsole, docs } = call.service.options
    const page = hasConsole ? 'console' : docs ? 'docs' : undefined
    if (page && prefersHtml(call.request.headers.get('accept')))
      return empty(307, { location: `${call.baseUrl}/${page}`, vary: 'accept' })
    const paths = [...(hasConsole ? ['console'] : []), ...(docs ? ['docs', 'openapi.json'] : []), 'workflow', 'job']
    const links = Object.fromEntries(paths.map((path) => [path, `${call.baseUrl}/${path}`]))
    return json({ name: 'stemwork', links }, { headers: { vary: 'accept' } })
  },
})

import { z } from 'zod'
import type { JobLink } from '../../core/engine/engine.js'
import { linkAddress } from '../routing/job-link.js'
import { empty, json } from '../routing/answer.js'
import type { KeyedCall } from '../routing/call.js'
import { definePageRoute, defineRoute } from '../routing/route.js'
import { jobLinkListSchema, jobLinkSchema, newJobLinkSchema } from '../schemas.js'
import { requireJob } from './job-routes.js'
import { timestamp } from './job-view.js'

/** Links to the page of one job. */
export const linkRoutes = [
  defineRoute({
    route: 'POST /job/:id/link',
    operation: 'createJobLink',
    summary: 'Create a link to one job',
    description:
      'For people without a key: the link opens a page of the console that shows the status and the results of this ' +
      'job, and nothing else. It ends when it expires, is revoked, or when the job is deleted.',
    bucket: 'create',
    body: newJobLinkSchema,
    answer: { description: 'The link.', schema: jobLinkSchema },
    problems: ['NOT_FOUND', 'CONFLICT'],
    async handle(call, { params, body }) {
      const { id } = await requireJob(call, params.id)
      const expiresInMs = body.expiresInSeconds * 1000
      return json(linkView(await call.service.engine.links.create(id, { expiresInMs }), id, call))
    },
  }),
  defineRoute({
    route: 'GET /job/:id/link',
    operation: 'listJobLinks',
    summary: 'List the links to a job',
    description: 'Those that work, newest first, and how often each was opened.',
    answer: { description: 'The links.', schema: jobLinkListSchema },
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      const { id } = await requireJob(call, params.id)
      const links = await call.service.engine.links.list(id)
      return json({ links: links.map((link) => linkView(link, id, call)) })
    },
  }),
  defineRoute({
    route: 'DELETE /job/:id/link/:link',
    operation: 'revokeJobLink',
    summary: 'Revoke a link to a job',
    description: 'From then on it opens nothing, and gives access to no files.',
    answer: { description: 'The link is revoked.', status: 204 },
    problems: ['NOT_FOUND'],
    async handle(call, { params }) {
      const { id } = await requireJob(call, params.id)
      if (params.link.length === id.length) await call.service.engine.links.revoke(id, params.link)
      return empty(204)
    },
  }),
]

/** The page of a link calls this once, when a person opens it. */
export const openedRoute = definePageRoute({
  route: 'POST /job/:id/opened',
  operation: 'countLinkOpen',
  isOpenToLinks: true,
  async handle(call, { params }) {
    const { link } = call.caller
    if (link) await call.service.engine.links.countOpen(params.id, link.id)
    return empty(204)
  },
})

function linkView(link: JobLink, jobId: string, call: KeyedCall): z.output<typeof jobLinkSchema> {
  const { id, createdAt, expiresAt, opens } = link
  const url = linkAddress(call.service, call.baseUrl, { app: call.caller.id, jobId, linkId: id, expiresAt })
  return { id, url, createdAt: timestamp(createdAt), expiresAt: timestamp(expiresAt), opens }
}

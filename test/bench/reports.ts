/** Row 10: signed delivery reports of SES, posted by SNS and ingested by a worker. */
import { sql } from 'slonik'
import { string } from 'yup'
import { countRow, row } from '../../db/postgres/rows.ts'
import { makeCertificate } from '../support/certificate.ts'
import { sesEvent } from '../support/ses-events.ts'
import { aNotification, SNS_HOST, signed, TOPIC } from '../support/sns.ts'
import { fill } from './accepts.ts'
import { atLeast, type Figure, seconds, upTo } from './figures.ts'
import { client } from './load.ts'
import type { Place, Rig } from './rig.ts'

const REPORTS = upTo(20_000)

const PATIENCE = 180_000

const delivered = ({ database }: Place): Promise<number> =>
  database.oneFirst(sql.type(countRow)`select count(*) as count from emails where status = 'delivered'`)

/** Creates signed posts, one for each of the team's emails. */
async function makePosts(
  { database }: Place,
  teamId: string,
  certificate: ReturnType<typeof makeCertificate>,
) {
  const rows = await database.any(sql.type(row({ id: string(), recipient: string() }))`
    select id, to_emails[1] as recipient from emails where team_id = ${teamId}`)
  return rows.map(({ id, recipient }) => {
    const event = sesEvent(
      'Delivery',
      { delivery: { timestamp: '2026-03-01T12:00:05.000Z', recipients: [recipient] } },
      { messageId: id, destination: [recipient], tags: { team_id: [teamId], email_id: [id] } },
    )
    return signed(certificate, aNotification({ Message: JSON.stringify(event) }))
  })
}

/** @param accepts the result of row 1, in emails per second. */
export async function measureReports(rig: Rig, accepts: number): Promise<Figure[]> {
  const place = await rig.place()
  const [team] = await place.teams(1)
  if (!team) throw new Error('there must be a team')
  await fill(place, team, { emails: 20_000 })
  const certificate = makeCertificate([SNS_HOST])
  const posts = await makePosts(place, team.id, certificate)
  const secrets = { BENCH_SNS_PEM: certificate.pem, BENCH_SNS_KEY: certificate.key_pem }
  const api = await place.api({ SNS_TOPIC_ARNS: TOPIC, ...secrets }, 'sns-preload.ts')
  await place.worker({ SMTP_URL: 'smtp://127.0.0.1:9', WORKER_QUEUES: 'ingest-report' })
  const { post } = client(api.base)
  const headers = { 'Content-Type': 'text/plain; charset=UTF-8' }
  const took = await seconds(async () => {
    const loop = async (): Promise<void> => {
      for (let body = posts.pop(); body !== undefined; body = posts.pop())
        await post('/hooks/ses', body, headers)
    }
    await Promise.all(Array.from({ length: 64 }, loop))
    const late = performance.now() + PATIENCE
    for (let done = 0; done < REPORTS; done = await delivered(place)) {
      if (performance.now() > late) throw new Error(`only ${done} of ${REPORTS} reports were ingested`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })
  await place.close()
  return [
    atLeast(1.2, {
      row: '10',
      measure: '20,000 signed SNS reports, posted and ingested',
      ours: REPORTS / took,
      reference: accepts,
      unit: 'a second',
      note: 'reference: row 1',
    }),
  ]
}
